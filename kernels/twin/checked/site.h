// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Where in a kernel a hook was called: the return addresses on the stack, kept under a number. They become a line only
// when someone asks, since that needs binutils' addr2line.
#ifndef MST_TWIN_CHECKED_SITE_H_
#define MST_TWIN_CHECKED_SITE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace AscendC {
namespace check {

using Site = uint32_t;

// The place that the calling hook was called from; needs frame pointers.
Site SiteHere();

// "rms_norm_kernel.h:57": the innermost line that is neither in the twin nor in kernel_util.h.
std::string LineOf(Site site);
std::vector<std::string> LinesOf(const std::vector<Site>& sites);

// Whether the mutation test has switched off the line that the calling hook was called from: a hook that orders
// instructions or makes a buffer. Notes the line for that test under `kind`.
bool IsSwitchedOff(const char* kind);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_SITE_H_
