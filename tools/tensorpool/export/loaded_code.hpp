#pragma once

/// @file
/// Made-up addresses for frames, as if all modules of all processes were loaded into one.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::export_ {

/// Where a file's code is in the file, and where its symbols count it.
struct CodeSegment {
    std::uint64_t file_offset = 0;
    std::uint64_t address = 0;
};
/// Of the first executable segment of a 64-bit ELF file of this machine's byte order; all 0 where
/// it is none. Only a regular file is opened.
CodeSegment code_segment_of(const std::string& path);

class LoadedCode {
public:
    explicit LoadedCode(const trace::Recording& recording);

    /// 0 of frames beyond all files.
    std::uint64_t address_of(trace::RecordedFrame frame) const;
    /// Lines as in /proc/PID/maps.
    std::string maps() const;

private:
    struct Module {
        std::uint64_t base = 0;
        std::uint64_t max_offset = 0;  // that any frame has
    };
    const trace::Recording& recording_;
    std::map<std::string, Module> modules_;  // by path
};

}  // namespace tensorpool::command::export_
