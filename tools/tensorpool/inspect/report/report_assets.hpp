#pragma once

#include <string_view>

namespace tensorpool::command::inspect {

/// A text that the report holds, and its SHA-256 in hexadecimal, by which the page's policy allows
/// this one and no other.
struct ReportAsset {
    std::string_view text;
    std::string_view sha256;
};

/// report.css and report.js as they were when the project was configured.
ReportAsset report_style() noexcept;
ReportAsset report_script() noexcept;

}  // namespace tensorpool::command::inspect
