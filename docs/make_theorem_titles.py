"""Write the titles of all theorems where privacy statements find them; run after adding one."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "accountant" / "report" / "templates" / "theorems.json"


def titles():
    """Return the page and the title of every theorem, by its number."""
    return {
        number: [path.stem, title]
        for path in sorted((ROOT / "docs").glob("theorems*.md"))
        for number, title in re.findall(r"^## ([A-Z]?\d+)\. (.*)$", path.read_text(), re.M)
    }


if __name__ == "__main__":
    lines = ",\n".join(f'"{n}": {json.dumps(v, ensure_ascii=False)}' for n, v in titles().items())
    TARGET.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
