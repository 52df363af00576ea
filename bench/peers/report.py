"""The comparison as a table, as JSON and as a picture."""
import html
import json

WIDTH, ROW, LEFT, RIGHT, TOP = 860, 58, 230, 150, 56
COLORS = {"peer": "#8a8f98", "trtmc": "#2f6fde"}


def label(row):
    return f"{row['kind']} {row['tokens']}" + (f" at {row['depth']}" if row["depth"] else "") + (
        f" × {row['batch']}" if row["batch"] > 1 else "")


def spread(values, digits):
    if values is None:
        return "–"
    return f"{values['median']:.{digits}f} ({values['min']:.{digits}f}–{values['max']:.{digits}f})"


def percent(share):
    return "–" if share is None else f"{100 * share:.0f} %"


def roof(row):
    if not row["roof"]["per_second"]:
        return "not measured"
    unit = "GB/s read" if row["roof"]["of"] == "bytes read" else "GOP/s multiply-add"
    return f"{row['roof']['per_second'] / 1e9:.1f} {unit}"


def table(document):
    """Markdown: median (min–max) of the rounds."""
    peer = document["peer"]["name"]
    lines = [f"| what | {peer}, tok/s | trtmc, tok/s | ratio | {peer} of the roof | trtmc of the roof | roof |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in document["rows"]:
        lines.append(f"| {label(row)} | {spread(row.get('peer'), 2)} | {spread(row['trtmc'], 2)} | {spread(row.get('ratio'), 2)} | "
                     f"{percent(row.get('peer_share'))} | {percent(row['trtmc_share'])} | {roof(row)} |")
    return "\n".join(lines) + "\n"


def to_json(document):
    return json.dumps(document, indent=1) + "\n"


def bar(row, side, y, scale):
    values = row.get(side)
    if values is None:
        return ""
    low, middle, high = (LEFT + values[key] * scale for key in ("min", "median", "max"))
    return (f'<rect x="{LEFT}" y="{y}" width="{middle - LEFT:.1f}" height="16" fill="{COLORS[side]}"/>'
            f'<path d="M{low:.1f} {y + 8}H{high:.1f}M{low:.1f} {y + 4}v8M{high:.1f} {y + 4}v8" stroke="#222" fill="none"/>'
            f'<text x="{high + 6:.1f}" y="{y + 13}">{values["median"]:.4g}</text>\n')


def svg(document):
    """Bars of tokens a second, each case on its own scale, with ranges and the roof as a line."""
    rows = document["rows"]
    height = TOP + ROW * len(rows) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">\n'
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n']
    title = f"{document['model']}, {document['threads']} threads: tokens a second"
    out.append(f'<text x="10" y="22" font-size="15">{html.escape(title)}</text>\n')
    for x, side, name in ((10, "peer", document["peer"]["name"]), (150, "trtmc", "trtmc")):
        out.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{COLORS[side]}"/>'
                   f'<text x="{x + 18}" y="45">{html.escape(name)}</text>\n')
    out.append('<path d="M270 32v16" stroke="#c33" stroke-dasharray="3 2"/><text x="278" y="45">the roof</text>\n')
    for number, row in enumerate(rows):
        y = TOP + ROW * number + 8
        limit = row["roof"]["per_second"] / row["roof"]["work_per_token"] if row["roof"]["per_second"] else 0.0
        top = max([limit, row["trtmc"]["max"]] + ([row["peer"]["max"]] if "peer" in row else []))
        scale = (WIDTH - LEFT - RIGHT) / top
        out.append(f'<text x="10" y="{y + 22}">{html.escape(label(row))}</text>\n')
        out += [bar(row, "peer", y, scale), bar(row, "trtmc", y + 18, scale)]
        if limit:
            x = LEFT + limit * scale
            out.append(f'<path d="M{x:.1f} {y - 4}v42" stroke="#c33" stroke-dasharray="3 2"/>\n')
    return "".join(out) + "</svg>\n"
