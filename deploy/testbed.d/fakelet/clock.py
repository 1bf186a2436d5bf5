"""Moments as the API writes them. A moment is a count of nanoseconds since 1970."""

import datetime
import re
import time


def now():
    return time.time_ns()


def seconds(moment):
    """`2026-01-31T09:00:00Z`, as in metadata and container states."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment // 10**9))


def micros(moment):
    """With six digits, as in leases."""
    return f"{seconds(moment)[:-1]}.{moment % 10**9 // 1000:06d}Z"


def nanos(moment):
    """With nine digits, as in front of log lines."""
    return f"{seconds(moment)[:-1]}.{moment % 10**9:09d}Z"


def parse(text):
    """Any RFC 3339 time with up to nine digits; ValueError otherwise."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", text)
    if not match:
        raise ValueError(f"not a time: {text}")
    whole, digits, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    moment = int(datetime.datetime.fromisoformat(whole.upper() + zone).timestamp())
    return moment * 10**9 + int((digits or "0").ljust(9, "0"))
