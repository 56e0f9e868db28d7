#include <tensorpool/scratch_report.hpp>

#include <string>

#include "base/text.hpp"
#include "base/report_text.hpp"

namespace tensorpool {

using base::BytesText;
using base::add_line;

std::string to_json(const ScratchReport& report) {
    std::string out;
    for (const OperatorScratch& one : report.operators) {
        if (!out.empty()) out += ',';
        out += "{\"name\":" + base::quoted(one.name.c_str()) +
               ",\"calls\":" + std::to_string(one.calls) +
               ",\"peak_bytes\":" + std::to_string(one.peak_bytes) +
               ",\"growths\":" + std::to_string(one.growths) +
               ",\"grown_bytes\":" + std::to_string(one.grown_bytes) + '}';
    }
    return "{\"operators\":[" + out + "]}";
}

std::string to_text(const ScratchReport& report) {
    std::string out;
    add_line(out, "%-24s %10s %12s %8s %12s", "operator", "calls", "peak", "growths", "grown by");
    for (const OperatorScratch& one : report.operators) {
        add_line(out, "%-24.60s %10llu %12s %8llu %12s", one.name.c_str(),
                 static_cast<unsigned long long>(one.calls), BytesText(one.peak_bytes).c_str(),
                 static_cast<unsigned long long>(one.growths), BytesText(one.grown_bytes).c_str());
    }
    return out;
}

}  // namespace tensorpool
