#pragma once

#include <istream>
#include <map>
#include <set>
#include <string>

namespace tensorpool::architecture {

/// What lib/layers.txt says: the layers, what each may use, the layer of each public header, and
/// what of another library it may include.
class LayerTable {
public:
    /// Throws std::runtime_error, with the line, for what is neither `layer NAME USED…`,
    /// `header FILE LAYER FOREIGN…`, `folder FOLDER FOREIGN…`, a comment nor blank, and for a layer
    /// that is used above its own line: a layer may only use those below it.
    static LayerTable read(std::istream& text);

    bool has(const std::string& layer) const { return used_by_.contains(layer); }
    /// A layer may always use itself.
    bool may_use(const std::string& layer, const std::string& used) const;
    /// What a layer may use, for messages: "base, platform" or "the standard library only".
    std::string allowed(const std::string& layer) const;

    /// File below include/tensorpool to layer.
    const std::map<std::string, std::string>& headers() const { return headers_; }
    /// True when the line of that public header names `included`, a header of another library, or a
    /// folder, with its slash, that holds it.
    bool may_include(const std::string& header, const std::string& included) const;
    /// The same of a folder below lib, without a slash at its end, that has a line of its own.
    bool folder_may_include(const std::string& folder, const std::string& included) const {
        return may_include(folder + '/', included);
    }

private:
    void add_layer(std::istream& words);
    void add_header(std::istream& words);
    void add_folder(std::istream& words);

    std::map<std::string, std::set<std::string>> used_by_;
    std::map<std::string, std::string> headers_;
    // Folders with a slash at their end.
    std::map<std::string, std::set<std::string>> foreign_;
};

}  // namespace tensorpool::architecture
