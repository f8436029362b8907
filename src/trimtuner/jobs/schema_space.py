"""The schema of what may be chosen: shares of the data, parameters, or a list of configurations."""

from __future__ import annotations

from trimtuner.jobs.schema_kinds import (
    BOOLEAN,
    CONDITION,
    NUMBER,
    PRICE,
    SHARE,
    VALUE,
    Schema,
    has,
    key,
    list_of,
    list_of_different,
    mapping,
    mapping_of_own,
    name_other_than,
    one_of,
    only,
    tidy,
    where,
)
from trimtuner.jobs.space_section import (
    FORMS,
    MOST_CONFIGURATIONS,
    MOST_PARAMETERS,
    PARAMETER_NAME,
    RANGE_TYPES,
    RUN_PLACEHOLDERS,
    SCALES,
    Data,
)

DATA = key(
    "How much of the data trials may train on.",
    mapping(
        {
            "fractions": key(
                "The shares of the data to test on, each above 0 and at most 1: numbers, or quotients such as `1/60`. "
                "Your command finds the share of its trial in `{fraction}`.",
                list_of_different(SHARE),
                default=[tidy(fraction) for fraction in Data.fractions],
                examples=[["1/60", "1/10", 0.25, 1]],
            ),
            "snapshots": key(
                "Whether one run passes the smaller shares on its way and reports at each of them, as a training over "
                "epochs does. Such reports are free. Your command finds the shares in `{snapshots}`.",
                BOOLEAN,
                default=Data.snapshots,
            ),
        }
    ),
    examples=[{"fractions": ["1/60", "1/10", "1/4", 1], "snapshots": True}],
)

PARAMETER: Schema = {
    **mapping(
        {
            "values": key(
                "The values to choose from: numbers, texts or true and false, each once.",
                list_of_different(VALUE),
                examples=[[16, 64, 256], ["sgd", "adam"]],
            ),
            "value": key("The one value of a constant, for use in the command.", VALUE, examples=[3]),
            "min": key("The least of a range.", NUMBER, examples=[16, 0.0]),
            "max": key("The most of a range, itself included.", NUMBER, examples=[512, 0.99]),
            "scale": key(
                "How distances between numbers are meant; `log` and `log2` need values above 0.",
                one_of(SCALES),
                default="linear",
            ),
            "type": key(
                "Whether a range holds whole numbers only. It may be left out where `min` or `max` has a point, which "
                "means `float`.",
                one_of(RANGE_TYPES),
            ),
            "when": key(
                "The parameter counts only where this holds: a condition on machines and on parameters above it. Where "
                "it does not, words of the command that name the parameter are left out.",
                CONDITION,
                examples=["optimizer == 'sgd'"],
            ),
        }
    ),
    "allOf": [
        where(has("values"), only(FORMS["values"])),
        where(has("value"), only(FORMS["value"])),
        where({"anyOf": [has("values"), has("value")]}, {}, has("min", "max")),
        where(
            {"properties": {"type": {"const": "int"}}, **has("type")},
            {"properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}},
        ),
    ],
}

PARAMETERS = key(
    "What your training script may be told, by names of your own: letters, digits and underscores. Each is a list of "
    "`values`, a range from `min` to `max`, or one `value`. Your command finds the choice in `{name}`.",
    {
        **mapping_of_own(name_other_than(PARAMETER_NAME, RUN_PLACEHOLDERS), PARAMETER),
        "minProperties": 1,
        "maxProperties": MOST_PARAMETERS,
    },
    examples=[
        {
            "learning_rate": {"values": [0.001, 0.0001], "scale": "log"},
            "batch_size": {"min": 16, "max": 512, "scale": "log2", "type": "int"},
            "optimizer": {"values": ["sgd", "adam"]},
            "momentum": {"min": 0.0, "max": 0.99, "when": "optimizer == 'sgd'"},
        }
    ],
)

CONFIGS = key(
    "Instead of `parameters` and `cloud`: every configuration written out, as a mapping of names of your own to "
    "values. All of them have a price, or none.",
    list_of(
        {
            **mapping_of_own(name_other_than(PARAMETER_NAME, RUN_PLACEHOLDERS), VALUE),
            "properties": {"price_per_hour": key("What an hour of this configuration costs, in USD.", PRICE)},
            "minProperties": 1,
            **where(has("price_per_hour"), {"minProperties": 2}),
        },
        least=1,
        most=MOST_CONFIGURATIONS,
    ),
    examples=[
        [
            {"rate": 0.1, "machine": "small", "price_per_hour": 0.05},
            {"rate": 0.1, "machine": "large", "price_per_hour": 0.1},
        ]
    ],
)
