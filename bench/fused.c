// Per-person sums with a budget, in single precision, as a careful C programmer would write them; and made-up people.
// bench/compare.py compiles it.
#include <stddef.h>
#include <stdint.h>

// One pass: whoever's cost still fits is charged. The mask has a byte for each person, as NumPy's has.
void admit(float *restrict spent, const float *restrict costs, float budget, uint8_t *restrict fits, size_t people,
           int threads) {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (size_t i = 0; i < people; i++) {
        float sum = spent[i] + costs[i];
        uint8_t ok = sum <= budget;
        spent[i] = ok ? sum : spent[i];
        fits[i] = ok;
    }
}

// Whole numbers below 2^24, the same as in examples/side_by_side.rs.
void made_up(uint64_t column, uint32_t *restrict units, size_t people, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < people; i++) {
        uint64_t z = ((column << 32) + i) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        units[i] = (uint32_t)(z >> 40);
    }
}

// Adds what was admitted to exact sums. Returns how many were refused though they would have fitted.
size_t tally(const uint32_t *restrict units, const uint8_t *restrict fits, uint64_t budget, uint64_t *restrict exact,
             size_t people, int threads) {
    size_t refused = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : refused)
    for (size_t i = 0; i < people; i++) {
        uint64_t sum = exact[i] + units[i];
        refused += !fits[i] && sum <= budget;
        exact[i] = fits[i] ? sum : exact[i];
    }
    return refused;
}
