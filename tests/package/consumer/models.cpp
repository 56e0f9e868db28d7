/// Uses the component `models` alone. Exits with 0 if everything works.

#include <tensorpool/model_file.hpp>

int main() {
    try {
        tensorpool::ModelFile::read({}, "nothing");
    } catch (const tensorpool::ModelFileError&) {
        return 0;
    }
    return 1;
}
