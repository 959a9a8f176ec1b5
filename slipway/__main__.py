"""`python -m slipway`: the command `slipway` of a certain interpreter."""

from slipway.command import main

main()
