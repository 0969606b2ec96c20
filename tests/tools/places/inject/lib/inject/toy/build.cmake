# Toy: nothing but the public headers.
sv_inject(toy)
