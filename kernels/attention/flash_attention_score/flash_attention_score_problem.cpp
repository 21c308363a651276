// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "attention/flash_attention_score/flash_attention_score_problem.h"

#include <algorithm>

#include "attention/flash_attention_score/flash_attention_score_band.h"

namespace mst {
namespace {

constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaskSide = 2048;        // rows and columns of a compressed mask
constexpr int64_t kPrefixMaskRows = 3072;  // rows of the compressed mask of mode 6

bool IsKnown(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t dim) { return dim >= 0; });
}

int64_t CountOf(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

// Where B, N, S and D of a layout are; -1: not a dim of its own.
struct Layout {
  size_t rank;
  int batch;
  int head;
  int row;
};

Layout LayoutOf(const std::string& name) {
  if (name == "SBH") return {3, 1, -1, 0};
  if (name == "BNSD") return {4, 0, 1, 2};
  if (name == "BSND") return {4, 0, 2, 1};
  if (name == "TND") return {3, -1, 1, 0};
  return {3, 0, -1, 1};  // BSH
}

// Sizes and strides of one tensor by its layout.
struct Operand {
  int64_t B;
  int64_t heads;
  int64_t S;
  int64_t D;
  int64_t row;
  int64_t head;
  int64_t batch;
};

void SetStrides(const std::string& layout, Operand* x) {
  x->head = layout == "BNSD" ? x->S * x->D : x->D;
  x->row = layout == "BNSD" ? x->D : layout == "SBH" ? x->B * x->heads * x->D : x->heads * x->D;
  x->batch = layout == "TND" ? 0 : layout == "SBH" ? x->heads * x->D : x->S * x->heads * x->D;
}

// `heads` splits the last dim of the layouts that have no head dim.
Status OperandOf(const OpArgs& args, const char* name, const std::string& layoutName, int64_t heads, Operand* x) {
  const Layout layout = LayoutOf(layoutName);
  const Shape& shape = args.Input(name).shape;
  x->S = shape[layout.row];
  x->B = layout.batch < 0 ? 1 : shape[layout.batch];
  x->heads = layout.head < 0 ? heads : shape[layout.head];
  x->D = shape.back();
  if (layout.head < 0) {
    if (heads < 1 || shape.back() % heads != 0) {
      return ValueErrorFor(args, "the last dim of '%s' must be a multiple of its %ld heads, but got %ld.", name,
                           L(heads), L(shape.back()));
    }
    x->D = shape.back() / heads;
  }
  SetStrides(layoutName, x);
  return Status::Ok();
}

Status CheckRanks(const OpArgs& args, const std::string& layout, bool* known) {
  *known = true;
  for (const char* name : {"query", "key", "value"}) {
    const Shape& shape = args.Input(name).shape;
    if (HasUnknownRank(shape)) {
      *known = false;
      continue;
    }
    if (shape.size() != LayoutOf(layout).rank) {
      return ValueErrorFor(args, "rank of '%s' must be %zu with input_layout '%s', but got %zu.", name,
                           LayoutOf(layout).rank, layout.c_str(), shape.size());
    }
    *known = *known && IsKnown(shape);
  }
  return Status::Ok();
}

Status CheckHeadDim(const OpArgs& args, const char* dim, const char* name, int64_t got) {
  if (got >= 1 && got <= kMaxHeadDim) return Status::Ok();
  return ValueErrorFor(args, "dim %s of '%s' must be from 1 to %ld, but got %ld.", dim, name, L(kMaxHeadDim), L(got));
}

Status CheckEqual(const OpArgs& args, const char* dim, const char* name, int64_t want, int64_t got) {
  if (want == got) return Status::Ok();
  return ValueErrorFor(args, "dim %s of '%s' must be %ld, but got %ld.", dim, name, L(want), L(got));
}

Status ReadOperands(const OpArgs& args, const std::string& layout, FlashAttentionScoreShape* s) {
  const int64_t N = args.Int("head_num");
  Operand q, k, v;
  MST_RETURN_IF_ERROR(OperandOf(args, "query", layout, N, &q));
  if (q.heads != N) return CheckEqual(args, "N", "query", N, q.heads);
  MST_RETURN_IF_ERROR(CheckHeadDim(args, "D", "query", q.D));
  // Without a head dim the key's heads follow from the query's width.
  int64_t Nkv = 1;
  if (LayoutOf(layout).head < 0) {
    const int64_t width = args.Input("key").shape.back();
    if (width < q.D || width % q.D != 0) {
      return ValueErrorFor(args, "the last dim of 'key' must be a multiple of dim D of 'query' (%ld), but got %ld.",
                           L(q.D), L(width));
    }
    Nkv = width / q.D;
  }
  MST_RETURN_IF_ERROR(OperandOf(args, "key", layout, Nkv, &k));
  Nkv = k.heads;
  MST_RETURN_IF_ERROR(OperandOf(args, "value", layout, Nkv, &v));
  MST_RETURN_IF_ERROR(CheckEqual(args, "D", "key", q.D, k.D));
  MST_RETURN_IF_ERROR(CheckEqual(args, "B", "key", q.B, k.B));
  MST_RETURN_IF_ERROR(CheckEqual(args, "B", "value", q.B, v.B));
  MST_RETURN_IF_ERROR(CheckEqual(args, "S", "value", k.S, v.S));
  MST_RETURN_IF_ERROR(CheckEqual(args, "N", "value", k.heads, v.heads));
  MST_RETURN_IF_ERROR(CheckHeadDim(args, "D", "value", v.D));
  if (Nkv < 1 || N % Nkv != 0) {
    return ValueErrorFor(args, "dim N of 'query' must be a multiple of dim N of 'key' (%ld), but got %ld.", L(Nkv),
                         L(N));
  }
  Operand out = q;
  out.D = v.D;
  SetStrides(layout, &out);
  Operand stat = q;
  stat.D = kFlashStatCopies;
  SetStrides(layout == "TND" ? "TND" : "BNSD", &stat);
  s->B = q.B, s->N = N, s->Nkv = Nkv, s->D = q.D, s->Dv = v.D, s->Sq = q.S, s->Skv = k.S;
  s->qRow = q.row, s->qHead = q.head, s->qBatch = q.batch;
  s->kRow = k.row, s->kHead = k.head, s->kBatch = k.batch;
  s->vRow = v.row, s->vHead = v.head, s->vBatch = v.batch;
  s->outRow = out.row, s->outHead = out.head, s->outBatch = out.batch;
  s->statRow = stat.row, s->statHead = stat.head, s->statBatch = stat.batch;
  s->packed = layout == "TND";
  return Status::Ok();
}

// A tensor of rank 4 whose dims are 1 or those of the scores; its strides, 0 where it is broadcast.
struct Broadcast {
  int64_t batch;
  int64_t head;
  int64_t row;
};

bool BroadcastOf(const Shape& shape, const FlashAttentionScoreShape& s, Broadcast* strides) {
  const int64_t want[] = {s.B, s.N, s.Sq};
  if (shape.size() != 4 || shape[3] != s.Skv) return false;
  for (int i = 0; i < 3; ++i) {
    if (shape[i] != 1 && shape[i] != want[i]) return false;
  }
  strides->row = shape[2] == 1 ? 0 : shape[3];
  strides->head = shape[1] == 1 ? 0 : shape[2] * shape[3];
  strides->batch = shape[0] == 1 ? 0 : shape[1] * shape[2] * shape[3];
  return true;
}

// Rows x keys over all sequences: what one head of a packed real_shift or drop_mask holds; -1 while unknown.
int64_t PairsOf(const FlashAttentionScoreProblem& problem) {
  const FlashAttentionScoreShape& s = problem.shape;
  if (s.packed == 0) return s.B * s.Sq * s.Skv;
  if (problem.qEnds == nullptr || problem.kvEnds == nullptr) return -1;
  int64_t pairs = 0;
  for (int64_t b = 0; b < s.B; ++b) {
    const FlashLengths lengths = FlashLengthsOf(problem, b);
    pairs += lengths.rows * lengths.keys;
  }
  return pairs;
}

Status ReadRealShift(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  const int64_t pseType = args.Int("pse_type");
  const bool wantsSlopes = pseType >= 2;
  s.pseType = -1;
  if (args.Has(wantsSlopes ? "real_shift" : "slopes")) {
    return ValueErrorFor(args, "'%s' must be None with pse_type %ld, but got a Tensor.",
                         wantsSlopes ? "real_shift" : "slopes", L(pseType));
  }
  if (wantsSlopes) {
    if (!args.Has("slopes")) {
      return ValueErrorFor(args, "'real_shift' must be given with pse_type %ld, but got None.", L(pseType));
    }
    const Shape& shape = args.Input("slopes").shape;
    const bool perBatch = shape == Shape{s.B, s.N};
    if (!perBatch && shape != Shape{s.N}) {
      return ValueErrorFor(args, "shape of 'real_shift' must be [%ld] or [%ld, %ld] with pse_type %ld, but got %s.",
                           L(s.N), L(s.B), L(s.N), L(pseType), ToString(shape).c_str());
    }
    s.slopeBatch = perBatch ? s.N : 0;
    s.pseType = static_cast<int32_t>(pseType);
  } else if (args.Has("real_shift")) {
    const Shape& shape = args.Input("real_shift").shape;
    s.pseType = static_cast<int32_t>(pseType);
    s.pseCount = CountOf(shape);
    if (s.packed != 0) {
      const int64_t pairs = PairsOf(*problem);
      if (pairs >= 0 && s.pseCount != pairs * s.N) {
        return ValueErrorFor(args, "'real_shift' must have N * Lq * Lkv elements of each sequence (%ld), but got %ld.",
                             L(pairs * s.N), L(s.pseCount));
      }
      return Status::Ok();
    }
    Broadcast strides;
    if (!BroadcastOf(shape, s, &strides)) {
      return ValueErrorFor(args,
                           "shape of 'real_shift' must be [B, N, Sq, Skv] ([%ld, %ld, %ld, %ld]) or 1 in the "
                           "first three, but got %s.",
                           L(s.B), L(s.N), L(s.Sq), L(s.Skv), ToString(shape).c_str());
    }
    s.pseBatch = strides.batch, s.pseHead = strides.head, s.pseRow = strides.row;
  }
  return Status::Ok();
}

Status ReadMask(const OpArgs& args, FlashAttentionScoreShape* s) {
  if (!args.Has("attn_mask")) {
    if (s->sparseMode != 1) return Status::Ok();
    return ValueErrorFor(args, "'attn_mask' must be given with sparse_mode 1, but got None.");
  }
  Shape shape = args.Input("attn_mask").shape;
  if (s->sparseMode >= 2 && s->sparseMode != 5) {
    const int64_t rows = s->sparseMode == 6 ? kPrefixMaskRows : kMaskSide;
    const Shape want = {rows, kMaskSide};
    if (shape == want || shape == Shape{1, 1, rows, kMaskSide}) return Status::Ok();
    return ValueErrorFor(args, "shape of 'attn_mask' must be %s with sparse_mode %d, but got %s.",
                         ToString(want).c_str(), s->sparseMode, ToString(shape).c_str());
  }
  s->hasMask = 1;
  if (s->packed != 0) {
    // One mask for all sequences; each uses its upper left corner.
    if (shape.size() != 2) {
      return ValueErrorFor(args, "rank of 'attn_mask' must be 2 with input_layout 'TND', but got %zu.", shape.size());
    }
    s->maskRow = shape[1];
    s->maskRows = shape[0];
    return Status::Ok();
  }
  if (shape.size() == 2) shape.insert(shape.begin(), 2, 1);
  Broadcast strides;
  if (!BroadcastOf(shape, *s, &strides)) {
    return ValueErrorFor(args,
                         "shape of 'attn_mask' must be [B, N, Sq, Skv] ([%ld, %ld, %ld, %ld]) or 1 in the first "
                         "three, or [Sq, Skv], but got %s.",
                         L(s->B), L(s->N), L(s->Sq), L(s->Skv), ToString(args.Input("attn_mask").shape).c_str());
  }
  s->maskBatch = strides.batch, s->maskHead = strides.head, s->maskRow = strides.row;
  return Status::Ok();
}

Status ReadDropout(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  if (args.Has("drop_mask")) {
    const int64_t pairs = PairsOf(*problem);
    s.dropBytes = CountOf(args.Input("drop_mask").shape);
    if (pairs >= 0 && s.dropBytes < (pairs * s.N + 7) / 8) {
      return ValueErrorFor(args, "'drop_mask' must have at least %ld bytes, one bit for each score, but got %ld.",
                           L((pairs * s.N + 7) / 8), L(s.dropBytes));
    }
  }
  if (s.keepProb < 1.0f) {
    s.dropKind = args.Has("drop_mask") ? 1 : 2;
    if (s.dropKind == 2 && !args.Has("seed_offset")) {
      return ValueErrorFor(args, "'drop_mask' or 'seed_offset' must be given with keep_prob %g, but got None.",
                           args.Float("keep_prob"));
    }
  }
  if (args.Has("seed_offset") && args.Input("seed_offset").shape != Shape{2}) {
    return ValueErrorFor(args, "shape of 'seed_offset' must be [2], but got %s.",
                         ToString(args.Input("seed_offset").shape).c_str());
  }
  if (args.Has("sink") && args.Input("sink").shape != Shape{s.N}) {
    return ValueErrorFor(args, "shape of 'sink' must be [%ld], but got %s.", L(s.N),
                         ToString(args.Input("sink").shape).c_str());
  }
  s.hasSink = args.Has("sink");
  return Status::Ok();
}

}  // namespace

Status FlashAttentionProblemOf(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  FlashAttentionScoreShape& s = problem->shape;
  s = {};
  problem->qEnds = problem->kvEnds = problem->prefix = nullptr;
  const std::string& layout = args.Str("input_layout");
  problem->elementBytes = SizeOf(args.Input("query").dtype);
  s.sparseMode = static_cast<int32_t>(args.Int("sparse_mode"));
  s.preTokens = std::clamp(args.Int("pre_tokens"), -kFlashFar, kFlashFar);  // sums of them stay in range
  s.nextTokens = std::clamp(args.Int("next_tokens"), -kFlashFar, kFlashFar);
  s.qStart = args.Int("q_start_idx");
  s.kvStart = args.Int("kv_start_idx");
  s.scale = static_cast<float>(args.Float("scale_value"));
  s.keepProb = static_cast<float>(args.Float("keep_prob"));
  s.softcap = static_cast<float>(args.Float("softcap"));
  s.bandSequence = -1;
  bool known = false;
  MST_RETURN_IF_ERROR(CheckRanks(args, layout, &known));
  if (!known) return Status::Ok();
  MST_RETURN_IF_ERROR(ReadOperands(args, layout, &s));
  if (!args.allDimsKnown()) return Status::Ok();
  MST_RETURN_IF_ERROR(FlashReadLengths(args, problem));
  MST_RETURN_IF_ERROR(ReadMask(args, &s));
  MST_RETURN_IF_ERROR(FlashCheckBand(args, problem));
  MST_RETURN_IF_ERROR(ReadRealShift(args, problem));
  return ReadDropout(args, problem);
}

}  // namespace mst
