"""The machine types that SageMaker trains on, as its API listed them in November 2026."""

from __future__ import annotations

_SIZES = {
    "m4": "xlarge 2xlarge 4xlarge 10xlarge 16xlarge",
    "m5": "large xlarge 2xlarge 4xlarge 12xlarge 24xlarge",
    "m6i r6i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "m7i c7i r7i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
    "m8i r8i": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 96xlarge",
    "m7i-flex m8i-flex r8i-flex": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
    "c4": "xlarge 2xlarge 4xlarge 8xlarge",
    "c5 c5n": "xlarge 2xlarge 4xlarge 9xlarge 18xlarge",
    "c6i": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge",
    "c8i": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 96xlarge",
    "c7i-flex c8i-flex g4dn": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge",
    "r5 r5d": "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge",
    "t3": "medium large xlarge 2xlarge",
    "g5 g6 g6e": "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
    "g7 g7e": "2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge",
    "p2": "xlarge 8xlarge 16xlarge",
    "p3": "2xlarge 8xlarge 16xlarge",
    "p3dn p4d p4de": "24xlarge",
    "p5": "4xlarge 48xlarge",
    "p5e p5en p6-b200 p6-b300 trn2": "48xlarge",
    "p6e-gb200": "36xlarge",
    "trn1": "2xlarge 32xlarge",
    "trn1n": "32xlarge",
}

TRAINING_TYPES = frozenset(
    f"{family}.{size}" for families, sizes in _SIZES.items() for family in families.split() for size in sizes.split()
)
