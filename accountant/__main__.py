"""``python -m accountant`` is the command line."""

from accountant.cli import main

if __name__ == "__main__":
    main(prog_name="accountant")
