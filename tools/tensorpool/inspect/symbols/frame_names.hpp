#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspect/symbols/code_file.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::inspect {

/// What the frames of a recording are called.
struct FrameName {
    std::string module;  ///< path
    std::uint64_t offset = 0;
    CodePlace place;        ///< empty where it is not known
    bool internal = false;  ///< of an allocator or the standard library: no answer to "who asks?"
};
/// "function at file:line", or as much of it as is known, else "library.so+0x1234".
std::string to_text(const FrameName& frame);
/// The same with the function's short name.
std::string to_short_text(const FrameName& frame);

/// The frames of a sampled stack from the first on that is not of tensorpool's own library; all
/// where there is none other.
std::span<const trace::RecordedFrame> frames_of_caller(const trace::Recording& recording,
                                                       std::uint32_t stack);

/// Looks each frame up once. Files that changed after the recording began are not asked, for what
/// they say would be wrong.
class FrameNames {
public:
    explicit FrameNames(const trace::Recording& recording) : recording_(recording) {}

    const FrameName& name(trace::RecordedFrame frame);
    /// A sentence for each module that could not be asked for a frame.
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    CodeFile* file_of(std::uint32_t module);

    const trace::Recording& recording_;
    std::unordered_map<std::uint32_t, CodeFile> files_;  // by module
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, FrameName>> names_;
    std::size_t looked_up_ = 0;
    std::vector<std::string> problems_;
};

}  // namespace tensorpool::command::inspect
