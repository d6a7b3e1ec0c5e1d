"""Run the command line: `python -m hinged_service.cli`."""

from hinged_service.cli.main import main

if __name__ == "__main__":
    main()
