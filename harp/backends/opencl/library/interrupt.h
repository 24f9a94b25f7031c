/* A launch cannot be interrupted. */
#define harp_interrupted(since) 0
