#pragma once

#include <string_view>

namespace tensorpool::command::inspect {

/// A text within the report, and its SHA-256 in hexadecimal, by which the page's policy allows only
/// this text.
struct ReportAsset {
    std::string_view text;
    std::string_view sha256;
};

/// Returns report.css as of the configuration of the project.
ReportAsset report_style() noexcept;
/// Returns report.js as of the configuration of the project.
ReportAsset report_script() noexcept;

}  // namespace tensorpool::command::inspect
