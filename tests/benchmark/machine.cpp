// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What this machine can do at most: multiply-adds per second and bytes per second, with a given number of threads.
// Compiled by machine.py for the machine it runs on (-march=native).
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
typedef float Vec __attribute__((vector_size(kVectorBytes)));
constexpr int kLanes = kVectorBytes / 4;
constexpr int kChains = 12;  // independent sums, enough to hide the latency of a multiply-add
constexpr int kSteps = 4096;

// Each Burn* does a fixed amount of work that the compiler cannot drop and returns its floating-point operations.
double BurnFloat() {
  Vec sum[kChains] = {};
  Vec a, b;
  for (int i = 0; i < kLanes; ++i) a[i] = 0.999f, b[i] = 0.5f;
  asm volatile("" : "+m"(a), "+m"(b));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = sum[i] * a + b;
  }
  asm volatile("" ::"m"(sum));
  return 2.0 * kLanes * kChains * kSteps;
}

#if defined(__AVX512BF16__)
double BurnBFloat16() {
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_setzero_ps();
  __m512bh a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00)), b = a;
  asm volatile("" : "+v"(a), "+v"(b));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], a, b);
  }
  asm volatile("" ::"m"(sum));
  return 4.0 * 16 * kChains * kSteps;
}
#elif defined(__ARM_FEATURE_BF16)
double BurnBFloat16() {
  float32x4_t sum[kChains];
  for (auto& s : sum) s = vdupq_n_f32(0);
  bfloat16x8_t a = vreinterpretq_bf16_u16(vdupq_n_u16(0x3f00)), b = a;
  asm volatile("" : "+w"(a), "+w"(b));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = vbfmmlaq_f32(sum[i], a, b);
  }
  asm volatile("" ::"m"(sum));
  return 2.0 * 16 * kChains * kSteps;
}
#else
double BurnBFloat16() { return 0; }
#endif

#if defined(__AMX_BF16__)
struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t columnBytes[16] = {};
  uint8_t rows[16] = {};
};

// The kernel grants the tile registers to a process on request only.
bool AmxAllowed() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

double BurnAmx() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.columnBytes[i] = 64, config.rows[i] = 16;
  asm volatile("" ::"r"(&config) : "memory");  // the intrinsic names only the first bytes: keep all stores
  _tile_loadconfig(&config);
  alignas(64) static uint8_t zeros[1024] = {};
  _tile_loadd(4, zeros, 64);
  _tile_loadd(5, zeros, 64);
  _tile_loadd(6, zeros, 64);
  _tile_loadd(7, zeros, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int step = 0; step < kSteps / 4; ++step) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 32 * kSteps;
}
#else
bool AmxAllowed() { return false; }
double BurnAmx() { return 0; }
#endif

// Sum over threads of work per second, each thread on its own for `seconds`.
double PerSecond(int threads, double seconds, const std::function<double(int)>& work) {
  std::vector<double> rates(threads);
  std::atomic<int> ready{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      work(t);  // warm up
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const auto begin = Clock::now();
      double done = 0;
      do done += work(t);
      while (Seconds(begin) < seconds);
      rates[t] = done / Seconds(begin);
    });
  }
  double sum = 0;
  for (int t = 0; t < threads; ++t) pool[t].join(), sum += rates[t];
  return sum;
}

double ReadBytes(const uint8_t* data, int64_t bytes) {
  Vec sum[4] = {};
  const Vec* vectors = reinterpret_cast<const Vec*>(data);
  const int64_t count = bytes / kVectorBytes;
  for (int64_t i = 0; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) sum[k] += vectors[i + k];
  }
  asm volatile("" ::"m"(sum));
  return static_cast<double>(bytes);
}

double CopyBytes(const uint8_t* from, uint8_t* to, int64_t bytes, bool streaming) {
  const int64_t count = bytes / kVectorBytes;
  const Vec* src = reinterpret_cast<const Vec*>(from);
  Vec* dst = reinterpret_cast<Vec*>(to);
  if (streaming) {
#if defined(__AVX512F__)
    for (int64_t i = 0; i < count; ++i) _mm512_stream_ps(reinterpret_cast<float*>(dst + i), src[i]);
    _mm_sfence();
#elif defined(__AVX2__)
    for (int64_t i = 0; i < count; ++i) _mm256_stream_ps(reinterpret_cast<float*>(dst + i), src[i]);
    _mm_sfence();
#else
    std::memcpy(to, from, bytes);
#endif
  } else {
    for (int64_t i = 0; i < count; ++i) dst[i] = src[i];
    asm volatile("" ::: "memory");
  }
  return 2.0 * bytes;
}

struct Buffers {
  Buffers(int threads, int64_t bytesEach) : bytes(bytesEach / 4096 * 4096) {
    for (int t = 0; t < threads; ++t) {
      data.push_back(static_cast<uint8_t*>(aligned_alloc(4096, bytes)));
      std::memset(data.back(), 1, bytes);
    }
  }
  ~Buffers() {
    for (uint8_t* d : data) free(d);
  }
  int64_t bytes;
  std::vector<uint8_t*> data;
};

}  // namespace

extern "C" {

// Floating-point operations per second: kind 0 float32, 1 bfloat16 by vector dot products, 2 bfloat16 by AMX tiles.
// 0 where the machine has no such instruction.
double FlopsPerSecond(int kind, int threads, double seconds) {
  if (kind == 2 && !AmxAllowed()) return 0;
  double (*burn)() = kind == 0 ? BurnFloat : kind == 1 ? BurnBFloat16 : BurnAmx;
  if (burn() == 0) return 0;
  return PerSecond(threads, seconds, [burn](int) { return burn(); });
}

// Bytes per second of all threads together, over `bytes` in all, which the threads share.
double ReadBytesPerSecond(int threads, int64_t bytes, double seconds) {
  Buffers from(threads, bytes / threads);
  return PerSecond(threads, seconds, [&](int t) { return ReadBytes(from.data[t], from.bytes); });
}

// The same for a copy of `bytes`: what is read plus what is written. The better of plain and streaming stores.
double CopyBytesPerSecond(int threads, int64_t bytes, double seconds) {
  Buffers from(threads, bytes / threads), to(threads, bytes / threads);
  double best = 0;
  for (bool streaming : {false, true}) {
    const double rate = PerSecond(threads, seconds / 2,
                                  [&](int t) { return CopyBytes(from.data[t], to.data[t], from.bytes, streaming); });
    if (rate > best) best = rate;
  }
  return best;
}

// MindSpore's aot form of an operator that does nothing: the cost of a call.
int Empty(int, void**, int*, int64_t**, const char**, void*, void*) { return 0; }
}
