/* How many elements a vector has, for files that are compiled for whatever vectors the machine has. */
#ifndef HARP_REGISTERS_H
#define HARP_REGISTERS_H

#if defined(__AVX512F__)
#define HARP_LANES (64 * 8 / HARP_BITS)
#elif defined(__AVX__)
#define HARP_LANES (32 * 8 / HARP_BITS)
#else
#define HARP_LANES (16 * 8 / HARP_BITS)
#endif

#endif
