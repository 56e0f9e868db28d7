#pragma once

#include <sys/syscall.h>

#include <cerrno>

#include "support/refused_call_linux.hpp"

namespace tensorpool::testing {

/// Makes membarrier fail in this process from now on, as in containers that forbid it.
inline bool forbid_fences() {
    return refuse_call(SYS_membarrier, EPERM);
}

}  // namespace tensorpool::testing
