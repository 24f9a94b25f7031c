/* Names that end with what a file is compiled for: the element type, or its bits, and the width of the vectors.
 *
 * KERNEL(gemm_panel) is harp_gemm_panel_f32_x16 where HARP_DTYPE is f32 and HARP_LANES is 16;
 * OF_HALF(gemm_panel) is then harp_gemm_panel_f32_x8. */
#ifndef HARP_NAMES_H
#define HARP_NAMES_H

#define HARP_PASTE(a, b) a##b
#define HARP_JOIN(a, b) HARP_PASTE(a, b)

/* Half as many lanes. */
#if HARP_LANES == 16
#define HARP_HALF 8
#elif HARP_LANES == 8
#define HARP_HALF 4
#elif HARP_LANES == 4
#define HARP_HALF 2
#endif

#define OF_DTYPE(stem) HARP_JOIN(harp_##stem##_, HARP_DTYPE)
#define KERNEL(stem) HARP_JOIN(OF_DTYPE(stem), HARP_JOIN(_x, HARP_LANES))
#define OF_HALF(stem) HARP_JOIN(OF_DTYPE(stem), HARP_JOIN(_x, HARP_HALF))
#define OF_BITS(stem) HARP_JOIN(HARP_JOIN(harp_##stem##_, HARP_BITS), HARP_JOIN(_x, HARP_LANES))

#endif
