"""What every part stands on: directed rounding, intervals, tolerances, files, locks, texts."""
