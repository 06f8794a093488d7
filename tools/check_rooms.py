#!/usr/bin/env python3
"""A room may include only itself and the rooms below it; third-party types stay out of public headers.

The order is that of ARCHITECTURE.md. Exits 1 and names every breach.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each room may include besides itself (src/<room> and include/strobe/<room>).
ALLOWED = {
    "base": set(),
    "record": {"base"},
    "gpu": {"base", "record", "trace"},
    "inject": {"base", "record", "gpu"},
    "collect": {"base"},
    "media": {"base"},
    "sensors": {"base", "media"},
    "models": {"base"},
    "engines": {"base", "models"},
    "pipeline": {"base", "record", "collect", "media", "models", "engines"},
    "tenants": {"base", "record", "collect", "media", "sensors", "models", "engines", "pipeline"},
    "measure": {"base", "collect", "gpu", "models", "engines"},
    "predict": {"base", "models"},
    "trace": {"base", "record"},
    "importers": {"base", "trace"},
    "exporters": {"base", "trace"},
    "analyze": {"base", "trace"},
    "simulate": {"base", "trace", "analyze"},
    "report": {"base", "trace", "analyze"},
    "bench": {"base", "record", "collect", "gpu", "trace", "analyze"},
}
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.M)
FOREIGN = re.compile(r"^\s*#include\s+[<\"](torch|ATen|c10|openvino|opencv2?|libav|libsw|sqlite3|nlohmann|fmt|CLI|spdlog)", re.M)


def room_of(include: str) -> str | None:
    parts = include.split("/")
    if parts[0] == "strobe" and len(parts) > 2:
        parts = parts[1:]
    return parts[0] if parts[0] in ALLOWED and len(parts) > 1 else None


def main() -> int:
    breaches = []
    for room, allowed in ALLOWED.items():
        files = [*(ROOT / "src" / room).rglob("*.cc"), *(ROOT / "src" / room).rglob("*.h"),
                 *(ROOT / "include/strobe" / room).rglob("*.h")]
        for path in files:
            text = path.read_text(encoding="utf-8")
            for include in INCLUDE.findall(text):
                other = room_of(include)
                if other and other != room and other not in allowed:
                    breaches.append(f"{path.relative_to(ROOT)}: room {room} may not include {include}")
    for path in (ROOT / "include").rglob("*.h"):
        for match in FOREIGN.finditer(path.read_text(encoding="utf-8")):
            breaches.append(f"{path.relative_to(ROOT)}: third-party header in a public one: {match.group(1)}")
    for breach in breaches:
        print(f"rooms: {breach}", file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
