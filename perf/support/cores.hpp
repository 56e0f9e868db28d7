#pragma once

namespace perf {

/// Keeps the calling thread on the `index`-th of the cores this process may use. False where there
/// are not so many. Two threads on one core take turns and never meet: that answers no question.
bool stay_on_core(int index) noexcept;

/// True where two threads can run at once.
bool two_cores() noexcept;

}  // namespace perf
