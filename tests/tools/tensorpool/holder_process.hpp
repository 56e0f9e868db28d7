#pragma once

#include "started_program.hpp"

namespace tensorpool::command {

/// A process with the pools "first" and "second", an arena, the device allocator "activations" with
/// 3 MiB in use, and a scope.
class HolderProcess {
public:
    /// Returns when everything is allocated. A different path must be a link to the program.
    explicit HolderProcess(const std::string& path = TENSORPOOL_HOLDER);

    std::string number() const { return std::to_string(program_.process()); }
    /// Executes "hold", "drop", "plan" (makes the planned arena "step"), "global" (touches 32 MiB
    /// of the global pool and frees them), "fragment" (leaves free memory of every kind in the
    /// global pool) or "mark TEXT"; returns when it is done.
    void order(const std::string& what);
    void kill();

private:
    StartedProgram program_;
};

}  // namespace tensorpool::command
