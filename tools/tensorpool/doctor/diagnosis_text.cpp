#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "doctor/diagnosis.hpp"
#include "common/printable.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t width = 79;
constexpr std::size_t indent = 6;

}  // namespace

const char* to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::fine:
            return "fine";
        case Verdict::note:
            return "note";
        case Verdict::wrong:
            return "wrong";
    }
    return "?";
}

std::string diagnosis_text(const std::vector<Diagnosis>& diagnoses) {
    std::string text;
    for (const Diagnosis& diagnosis : diagnoses) {
        text += fmt::format("{:<5} {}: {}\n", to_string(diagnosis.verdict), diagnosis.what,
                            diagnosis.found);
        if (diagnosis.advice.empty()) continue;
        for (const std::string& line : wrap(diagnosis.advice, width - indent)) {
            text += std::string(indent, ' ') + line + '\n';
        }
        if (diagnosis.command.empty()) continue;
        text += std::string(indent, ' ') + diagnosis.command + '\n';
    }
    return text;
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
    const nlohmann::ordered_json json = {{"what", diagnosis.what},
                                         {"verdict", to_string(diagnosis.verdict)},
                                         {"found", diagnosis.found},
                                         {"advice", diagnosis.advice},
                                         {"command", diagnosis.command}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tensorpool::command
