#pragma once

/// @file
/// Artificial addresses for frames, as if all modules of all processes were loaded into one.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::export_ {

/// Where the code segment lies in the file, and its virtual address.
struct CodeSegment {
    std::uint64_t file_offset = 0;
    std::uint64_t address = 0;
};
/// Returns the first executable segment of a 64-bit ELF file of this machine's byte order, or zeros
/// for any other file. Opens only regular files.
CodeSegment code_segment_of(const std::string& path);

class LoadedCode {
public:
    explicit LoadedCode(const trace::Recording& recording);

    /// Returns the address of a frame, or 0 if the frame lies outside all files.
    std::uint64_t address_of(trace::RecordedFrame frame) const;
    /// Returns the modules as lines in the format of /proc/PID/maps.
    std::string maps() const;

private:
    struct Module {
        std::uint64_t base = 0;
        std::uint64_t max_offset = 0;  // of all frames in this module
    };
    const trace::Recording& recording_;
    std::map<std::string, Module> modules_;  // indexed by path
};

}  // namespace tensorpool::command::export_
