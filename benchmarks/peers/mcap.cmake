# MCAP beside PyPI's mcap: mcap.sh runs it.
add_executable(strobe_mcap_peer ${CMAKE_CURRENT_SOURCE_DIR}/peers/mcap.cc)
target_link_libraries(strobe_mcap_peer PRIVATE strobe_sensors fmt::fmt)
strobe_warnings(strobe_mcap_peer)
