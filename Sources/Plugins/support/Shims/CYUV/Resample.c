// SPDX-License-Identifier: Apache-2.0

#include "Resample.h"

#include <string.h>

// MARK: Plain: what the vector code below does, byte by byte, and its edges.

static void blend_from(size_t x, uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    for (; x < bytes; x++) out[x] = (uint8_t)((a[x] * (128 - weight) + b[x] * weight + 64) >> 7) ^ 128;
}

static void columns_of(const fh_resample_group *group, uint8_t *out, size_t bytes, const uint8_t *row) {
    for (size_t x = 0; x < bytes; x++) {
        const uint8_t *const sixteen = row + group->offset[x / 8];
        const int8_t first = (int8_t)sixteen[group->from[2 * x]];
        const int8_t second = (int8_t)sixteen[group->from[2 * x + 1]];
        out[x] = (uint8_t)((first * group->weights[2 * x] + second * group->weights[2 * x + 1] + 128 * 128 + 64) >> 7);
    }
}

static void transpose_part(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t left, size_t right, size_t top, size_t bottom,
    size_t unit
) {
    for (size_t y = top; y < bottom; y++)
        for (size_t x = left; x < right; x++)
            memcpy(out + (ptrdiff_t)x * out_stride + y * unit, in + (ptrdiff_t)y * in_stride + x * unit, unit);
}

void fh_resample_blend_plain(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    blend_from(0, out, a, b, bytes, weight);
}

void fh_resample_columns_plain(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups) {
    for (size_t x = 0; x < bytes; x += 16) columns_of(groups + x / 16, out + x, bytes - x < 16 ? bytes - x : 16, row);
}

void fh_transpose_plain(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit
) {
    transpose_part(out, out_stride, in, in_stride, 0, columns, 0, rows, unit);
}

#if defined(__x86_64__)

#include <immintrin.h>

// MARK: SSSE3: shuffles of bytes by a table, and products of bytes added in pairs.

#define SSSE3 __attribute__((target("ssse3")))
#define LOAD(address) _mm_loadu_si128((const __m128i *)(address))
#define STORE(address, value) _mm_storeu_si128((__m128i *)(address), value)

SSSE3 static void blend_ssse3(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    size_t x = 0;
    const __m128i sign = _mm_set1_epi8((char)128);
    if (weight == 0) {
        for (; x + 16 <= bytes; x += 16) STORE(out + x, _mm_xor_si128(LOAD(a + x), sign));
    } else {
        const __m128i weights = _mm_set1_epi16((short)(weight << 8 | (128 - weight)));
        const __m128i half = _mm_set1_epi16(64);
        for (; x + 16 <= bytes; x += 16) {
            const __m128i upper = LOAD(a + x), lower = LOAD(b + x);
            __m128i low = _mm_maddubs_epi16(_mm_unpacklo_epi8(upper, lower), weights);
            __m128i high = _mm_maddubs_epi16(_mm_unpackhi_epi8(upper, lower), weights);
            low = _mm_srli_epi16(_mm_add_epi16(low, half), 7);
            high = _mm_srli_epi16(_mm_add_epi16(high, half), 7);
            STORE(out + x, _mm_xor_si128(_mm_packus_epi16(low, high), sign));
        }
    }
    blend_from(x, out, a, b, bytes, weight);
}

SSSE3 static inline __m128i half_group(const fh_resample_group *group, int half, const uint8_t *row) {
    const __m128i pairs = _mm_shuffle_epi8(LOAD(row + group->offset[half]), LOAD(group->from + 16 * half));
    // Weights are the unsigned factor, up to 128; bytes less 128 are the signed one.
    const __m128i sums = _mm_maddubs_epi16(LOAD(group->weights + 16 * half), pairs);
    return _mm_srli_epi16(_mm_add_epi16(sums, _mm_set1_epi16(128 * 128 + 64)), 7);
}

SSSE3 static void columns_ssse3(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups) {
    size_t x = 0;
    for (; x + 16 <= bytes; x += 16, groups++)
        STORE(out + x, _mm_packus_epi16(half_group(groups, 0, row), half_group(groups, 1, row)));
    if (x < bytes) columns_of(groups, out + x, bytes - x, row);
}

// MARK: AVX2: the same, twice as wide.

#define AVX2 __attribute__((target("avx2")))
#define LOAD32(address) _mm256_loadu_si256((const __m256i *)(address))
#define STORE32(address, value) _mm256_storeu_si256((__m256i *)(address), value)

AVX2 static void blend_avx2(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    size_t x = 0;
    const __m256i sign = _mm256_set1_epi8((char)128);
    if (weight == 0) {
        for (; x + 32 <= bytes; x += 32) STORE32(out + x, _mm256_xor_si256(LOAD32(a + x), sign));
    } else {
        const __m256i weights = _mm256_set1_epi16((short)(weight << 8 | (128 - weight)));
        const __m256i half = _mm256_set1_epi16(64);
        for (; x + 32 <= bytes; x += 32) {
            const __m256i upper = LOAD32(a + x), lower = LOAD32(b + x);
            __m256i low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(upper, lower), weights);
            __m256i high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(upper, lower), weights);
            low = _mm256_srli_epi16(_mm256_add_epi16(low, half), 7);
            high = _mm256_srli_epi16(_mm256_add_epi16(high, half), 7);
            STORE32(out + x, _mm256_xor_si256(_mm256_packus_epi16(low, high), sign));
        }
    }
    blend_from(x, out, a, b, bytes, weight);
}

AVX2 static void columns_avx2(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups) {
    size_t x = 0;
    const __m256i half = _mm256_set1_epi16(128 * 128 + 64);
    for (; x + 16 <= bytes; x += 16, groups++) {
        const __m256i halves = _mm256_inserti128_si256(
            _mm256_castsi128_si256(LOAD(row + groups->offset[0])), LOAD(row + groups->offset[1]), 1);
        const __m256i pairs = _mm256_shuffle_epi8(halves, LOAD32(groups->from));
        const __m256i sums = _mm256_add_epi16(_mm256_maddubs_epi16(LOAD32(groups->weights), pairs), half);
        const __m256i words = _mm256_srli_epi16(sums, 7);
        STORE(out + x, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
    }
    if (x < bytes) columns_of(groups, out + x, bytes - x, row);
}

// MARK: Turning: rounds of interleaving row `i` with row `i + half of them`. Eight registers at a time, since sixteen would be spilled.

/// Sixteen rows of eight bytes.
static inline void half_block_of_1(uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride) {
    __m128i rows[8], mixed[8];
    for (int i = 0; i < 8; i++) {
        const __m128i upper = _mm_loadl_epi64((const __m128i *)(in + i * in_stride));
        const __m128i lower = _mm_loadl_epi64((const __m128i *)(in + (i + 8) * in_stride));
        rows[i] = _mm_unpacklo_epi8(upper, lower);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            mixed[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 4]);
            mixed[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 4]);
        }
        memcpy(rows, mixed, sizeof rows);
    }
    for (int i = 0; i < 8; i++) STORE(out + i * out_stride, rows[i]);
}

static void block_of_1(uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride) {
    half_block_of_1(out, out_stride, in, in_stride);
    half_block_of_1(out + 8 * out_stride, out_stride, in + 8, in_stride);
}

/// Eight rows of eight pairs of bytes.
static void block_of_2(uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride) {
    __m128i rows[8], mixed[8];
    for (int i = 0; i < 8; i++) rows[i] = LOAD(in + i * in_stride);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            mixed[2 * i] = _mm_unpacklo_epi16(rows[i], rows[i + 4]);
            mixed[2 * i + 1] = _mm_unpackhi_epi16(rows[i], rows[i + 4]);
        }
        memcpy(rows, mixed, sizeof rows);
    }
    for (int i = 0; i < 8; i++) STORE(out + i * out_stride, rows[i]);
}

/// Four rows of four pixels.
static void block_of_4(uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride) {
    __m128i rows[4], mixed[4];
    for (int i = 0; i < 4; i++) rows[i] = LOAD(in + i * in_stride);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            mixed[2 * i] = _mm_unpacklo_epi32(rows[i], rows[i + 2]);
            mixed[2 * i + 1] = _mm_unpackhi_epi32(rows[i], rows[i + 2]);
        }
        memcpy(rows, mixed, sizeof rows);
    }
    for (int i = 0; i < 4; i++) STORE(out + i * out_stride, rows[i]);
}

static void transpose_sse2(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit
) {
    const size_t side = 16 / unit;
    const size_t right = columns / side * side, bottom = rows / side * side;
    for (size_t x = 0; x < right; x += side) {
        for (size_t y = 0; y < bottom; y += side) {
            uint8_t *const to = out + (ptrdiff_t)x * out_stride + y * unit;
            const uint8_t *const from = in + (ptrdiff_t)y * in_stride + x * unit;
            if (unit == 1) block_of_1(to, out_stride, from, in_stride);
            else if (unit == 2) block_of_2(to, out_stride, from, in_stride);
            else block_of_4(to, out_stride, from, in_stride);
        }
    }
    transpose_part(out, out_stride, in, in_stride, right, columns, 0, bottom, unit);
    transpose_part(out, out_stride, in, in_stride, 0, columns, bottom, rows, unit);
}

void fh_resample_blend(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    if (__builtin_cpu_supports("avx2")) blend_avx2(out, a, b, bytes, weight);
    else if (__builtin_cpu_supports("ssse3")) blend_ssse3(out, a, b, bytes, weight);
    else fh_resample_blend_plain(out, a, b, bytes, weight);
}

void fh_resample_columns(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups) {
    if (__builtin_cpu_supports("avx2")) columns_avx2(out, bytes, row, groups);
    else if (__builtin_cpu_supports("ssse3")) columns_ssse3(out, bytes, row, groups);
    else fh_resample_columns_plain(out, bytes, row, groups);
}

void fh_transpose(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit
) {
    transpose_sse2(out, out_stride, in, in_stride, columns, rows, unit);
}

#else

void fh_resample_blend(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight) {
    fh_resample_blend_plain(out, a, b, bytes, weight);
}

void fh_resample_columns(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups) {
    fh_resample_columns_plain(out, bytes, row, groups);
}

void fh_transpose(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit
) {
    fh_transpose_plain(out, out_stride, in, in_stride, columns, rows, unit);
}

#endif
