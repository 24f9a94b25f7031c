"""Threefry-2x32 once more, straight from the paper, over NumPy arrays; and what each position of an array gets."""

import numpy as np

ROTATIONS = [[13, 15, 26, 6], [17, 29, 16, 24]]


def threefry(key, counter, rounds=20):
    """Both halves of the block; integers or arrays of uint64 that hold 32 bits."""
    mask = np.uint64(0xFFFFFFFF)
    k = [np.uint64(int(w)) for w in key]
    k.append(np.uint64(0x1BD11BDA) ^ k[0] ^ k[1])
    x = [np.asarray(c, np.uint64) for c in counter]
    for r in range(rounds):
        if r % 4 == 0:  # inject the key before rounds 0, 4, ...
            s = r // 4
            x = [(x[0] + k[s % 3]) & mask, (x[1] + k[(s + 1) % 3] + np.uint64(s)) & mask]
        turn = np.uint64(ROTATIONS[r // 4 % 2][r % 4])
        first = (x[0] + x[1]) & mask
        x = [first, (((x[1] << turn) | (x[1] >> (np.uint64(32) - turn))) & mask) ^ first]
    s = rounds // 4
    return (x[0] + k[s % 3]) & mask, (x[1] + k[(s + 1) % 3] + np.uint64(s)) & mask


def words(key, count, lane=0):
    """The words of the elements 0, 1, ... of an array drawn from a key."""
    position = np.arange(count, dtype=np.uint64)
    high = (position >> np.uint64(32)) + np.uint64(lane << 16)
    return threefry(np.asarray(key), (high, position & np.uint64(0xFFFFFFFF)))


def joined(key, count, lane=0):
    """The same as integers of 64 bits."""
    high, low = words(key, count, lane)
    return (high << np.uint64(32)) | low
