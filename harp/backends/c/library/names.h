/* Names that end with what a file is compiled for: the element type, or its bits, and the width of the vectors.
 *
 * KERNEL(gemm_panel) is harp_gemm_panel_f32_x16 where HARP_DTYPE is f32 and HARP_LANES is 16. */
#ifndef HARP_NAMES_H
#define HARP_NAMES_H

#define HARP_PASTE(a, b) a##b
#define HARP_JOIN(a, b) HARP_PASTE(a, b)

#define OF_DTYPE(stem) HARP_JOIN(harp_##stem##_, HARP_DTYPE)
#define KERNEL(stem) HARP_JOIN(OF_DTYPE(stem), HARP_JOIN(_x, HARP_LANES))
#define OF_BITS(stem) HARP_JOIN(HARP_JOIN(harp_##stem##_, HARP_BITS), HARP_JOIN(_x, HARP_LANES))

#endif
