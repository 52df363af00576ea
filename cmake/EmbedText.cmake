# cmake -DINPUT=a.json -DOUTPUT=a.cc -DNAME=kText -DVERSION=0.1.0 -P EmbedText.cmake
# The file as `const std::string_view trtmc::NAME`; "@version@" in it becomes VERSION.
file(READ ${INPUT} text)
string(REPLACE "@version@" "${VERSION}" text "${text}")
string(LENGTH "${text}" length)
string(HEX "${text}" bytes)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
# A string literal may have 65536 bytes only.
file(WRITE ${OUTPUT} "#include <string_view>\n\nnamespace trtmc {\nnamespace {\n
constexpr unsigned char kBytes[] = {\n${bytes}0};\n\n}  // namespace\n
extern const std::string_view ${NAME};
const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof kBytes - 1);\n\n}  // namespace trtmc\n")
