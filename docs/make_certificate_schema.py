"""Write the JSON schema of certificates from the table of the checker: certificate.schema.json."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "verifier"))

from dp_verifier.document import KEYS, LONGEST_LIST  # noqa: E402


def schema_of(kind):
    """Return the schema of what the table describes by a word."""
    if kind == "*":
        return {}
    if kind.startswith("["):
        return {
            "type": "array",
            "items": schema_of(kind[1:-1]),
            "minItems": 1,
            "maxItems": LONGEST_LIST,
        }
    if ".." in kind:
        low, high = (float(each) for each in kind.lstrip("#").split(".."))
        name = "integer" if kind.startswith("#") else "number"
        return {"type": name, "minimum": low, "maximum": high}
    if kind in KEYS:
        found = {"$ref": f"#/$defs/{kind}"}
        return {"anyOf": [found, {"type": "null"}]} if kind == "rule" else found
    return {"enum": kind.split("|")}


def object_of(kind):
    """Return the schema of an object: its keys, and no others."""
    variants = [each for each in KEYS if each.startswith(f"{kind}-")]
    if variants:
        return {"oneOf": [{"$ref": f"#/$defs/{each}"} for each in variants]}
    common, _, name = kind.partition("-")
    keys = dict(each.split(":") for each in [*KEYS[common], *(KEYS[kind] if name else ())])
    properties = {key.rstrip("?"): schema_of(each) for key, each in keys.items()}
    if common == "evidence":
        properties["kind"] = {"const": name}
    if kind == "document":
        properties["evidence"] = {"anyOf": [schema_of(each) for each in ("both", "remove", "add")]}
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in keys if not key.endswith("?")],
        "additionalProperties": False,
    }


def schema():
    """Return the whole schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A certificate of differential privacy",
        "$ref": "#/$defs/document",
        "$defs": {kind: object_of(kind) for kind in KEYS},
    }


if __name__ == "__main__":
    (HERE / "certificate.schema.json").write_text(json.dumps(schema(), indent=1) + "\n")
