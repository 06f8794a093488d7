# Real traces of other tools are read by the room that imports them.
target_link_libraries(strobe_analyze_test PRIVATE strobe_importers nlohmann_json::nlohmann_json SQLite::SQLite3)
