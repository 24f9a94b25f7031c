/* A work-item starts no others. */
#define harp_parallel 0
