# Bodies that attract each other: additions, products, quotients and square roots of floating-point numbers. IEEE 754
# defines the result of each of these operations, so the last digits are the same on every processor.

import math


class Body:
    __slots__ = ("x", "y", "z", "vx", "vy", "vz", "mass")

    def __init__(self, number):
        self.x, self.y, self.z = 1.7 * number, 0.9 * number - 2.0, 0.3 * number * number
        self.vx, self.vy, self.vz = 0.02 * number, -0.03, 0.01 * (number % 3)
        self.mass = 1.0 / (1.0 + number)


def advance(pairs, bodies, step):
    for one, other in pairs:
        dx, dy, dz = one.x - other.x, one.y - other.y, one.z - other.z
        squares = dx * dx + dy * dy + dz * dz + 0.01
        pull = step / (squares * math.sqrt(squares))
        mine, theirs = pull * other.mass, pull * one.mass
        one.vx -= dx * mine
        one.vy -= dy * mine
        one.vz -= dz * mine
        other.vx += dx * theirs
        other.vy += dy * theirs
        other.vz += dz * theirs
    for body in bodies:
        body.x += step * body.vx
        body.y += step * body.vy
        body.z += step * body.vz


def energy(pairs, bodies):
    moving = sum(0.5 * b.mass * (b.vx * b.vx + b.vy * b.vy + b.vz * b.vz) for b in bodies)
    apart = [
        one.mass * other.mass / math.sqrt((one.x - other.x) ** 2 + (one.y - other.y) ** 2 + (one.z - other.z) ** 2)
        for one, other in pairs
    ]
    return moving - sum(apart)


bodies = [Body(number) for number in range(6)]
pairs = [(one, other) for place, one in enumerate(bodies) for other in bodies[place + 1 :]]
before = energy(pairs, bodies)
for _ in range(30000):
    advance(pairs, bodies, 0.001)
print(repr(before), repr(energy(pairs, bodies)), repr(bodies[0].x))
