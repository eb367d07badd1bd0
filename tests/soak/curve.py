"""A run's samples: their slope, and their picture as plain SVG."""

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 150, 70, 40, 40


def slope(times, values):
    """Least squares: units of value per second of time."""
    n = len(times)
    mean_t, mean_v = sum(times) / n, sum(values) / n
    spread = sum((t - mean_t) ** 2 for t in times)
    return sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values)) / (spread or 1)


def panel(top, times, values, label, settled):
    """One series as a line, its range at the left, the part that the slope is of shaded."""
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or 1
    low, high = low - room, high + room
    end = times[-1] or 1

    def x(t):
        return LEFT + t / end * (WIDTH - LEFT - 20)

    def y(v):
        return top + HEIGHT - (v - low) / (high - low) * HEIGHT

    points = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in zip(times, values))
    hours = "".join(
        f'<text x="{x(t):.0f}" y="{top + HEIGHT + 14}" text-anchor="middle">{t / 60:.0f} min</text>'
        for t in (0, end / 4, end / 2, end * 3 / 4, end))
    return (f'<rect x="{x(settled):.1f}" y="{top}" width="{x(end) - x(settled):.1f}" '
            f'height="{HEIGHT}" fill="#eef3fa"/>'
            f'<path d="M{LEFT},{top} V{top + HEIGHT} H{WIDTH - 20}" fill="none" stroke="#888"/>'
            f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.2"/>'
            f'<text x="{LEFT}" y="{top - 6}" font-weight="bold">{label}</text>'
            f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{high:.1f}</text>'
            f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">{low:.1f}</text>{hours}')


def picture(title, series, settled):
    """`series`: label -> (times, values), a panel each. `settled`: where the slopes begin, in
    seconds."""
    height = TOP + len(series) * (HEIGHT + GAP) + 10
    panels = "".join(panel(TOP + 20 + i * (HEIGHT + GAP), times, values, label, settled)
                     for i, (label, (times, values)) in enumerate(series.items()))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" '
            f'fill="white"/><text x="{LEFT}" y="20" font-size="13">{title}</text>{panels}</svg>\n')
