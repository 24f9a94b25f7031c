/* How fast a device is: copies of an array, and multiply-adds in registers. HARP_REAL is a number or a vector. */

__kernel void harp_copy(__global const HARP_REAL *from, __global HARP_REAL *to)
{
    const size_t i = get_global_id(0);
    to[i] = from[i];
}

/* Chains y = y*a + b that do not wait for each other, HARP_STEPS long. */
__kernel void harp_multiply_adds(__global HARP_REAL *to, const HARP_NUMBER a, const HARP_NUMBER b)
{
    HARP_REAL y0 = (HARP_REAL)(get_local_id(0)), y1 = y0 + a, y2 = y1 + a, y3 = y2 + a;
    HARP_REAL y4 = y3 + a, y5 = y4 + a, y6 = y5 + a, y7 = y6 + a;
    for (int step = 0; step < HARP_STEPS; ++step) {
        y0 = fma(y0, (HARP_REAL)a, (HARP_REAL)b), y1 = fma(y1, (HARP_REAL)a, (HARP_REAL)b);
        y2 = fma(y2, (HARP_REAL)a, (HARP_REAL)b), y3 = fma(y3, (HARP_REAL)a, (HARP_REAL)b);
        y4 = fma(y4, (HARP_REAL)a, (HARP_REAL)b), y5 = fma(y5, (HARP_REAL)a, (HARP_REAL)b);
        y6 = fma(y6, (HARP_REAL)a, (HARP_REAL)b), y7 = fma(y7, (HARP_REAL)a, (HARP_REAL)b);
    }
    to[get_global_id(0)] = ((y0 + y1) + (y2 + y3)) + ((y4 + y5) + (y6 + y7));
}
