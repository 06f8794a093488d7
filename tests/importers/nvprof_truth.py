"""The tables of a summary log of nvprof, read by regular expressions: lines "table|name|column=value|..." in base units."""
import decimal
import re
import sys

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
group = dependency = None


def ns(text):
    number, unit = re.fullmatch(r"([\d.]+)([mun]?s)", text).groups()
    return int(decimal.Decimal(number) * UNITS[unit])


for line in open(sys.argv[1]):
    dependency = dependency or "Dependency Analysis" in line
    cells = line.split()
    if dependency and re.match(r"\s+[\d.]+%", line):
        print("dependency analysis", line.split(None, 3)[3].strip(), f"share={float(cells[0][:-1]) / 100!r}",
              f"path_ns={ns(cells[1])}", f"waiting_ns={ns(cells[2])}", sep="|")
    elif match := re.match(r"\s+(?:(GPU activities|API calls):)?\s*([\d.]+)%\s", line):
        group = match[1] or group
        share, total, calls, mean, least, most, name = line[match.start(2):].split(None, 6)
        print(group, name.strip(), f"share={float(share[:-1]) / 100!r}", f"total_ns={ns(total)}", f"calls={calls}",
              f"avg_ns={ns(mean)}", f"min_ns={ns(least)}", f"max_ns={ns(most)}", sep="|")
