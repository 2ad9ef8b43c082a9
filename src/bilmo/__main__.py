"""`python -m bilmo`."""

from bilmo.cli.app import main

main()
