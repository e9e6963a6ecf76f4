"""Units apart: what each unit adds to a sum, on two neighbouring data sets and without noise.

A run is made twice with everything at its defaults, and a learning rate of zero, so that every
batch meets the same parameters. What a unit adds is read where it is added. Nothing but the noise
is taken away, and the system's entropy is that of the unit that asks for it: the coupling under
which a contribution is compared with itself.
"""
