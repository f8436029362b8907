"""What an engine finds in the output of a training script."""

from trimtuner.engines.supervising.metrics import Lines, metrics_of_output, parse_metrics


def reports_in(output: str) -> list[dict[str, float]]:
    lines = Lines()
    found = [metrics_of_output(line) for line in [*lines.feed(output.encode()), *lines.finish()]]
    return [parse_metrics(text) for text in found if text is not None]
