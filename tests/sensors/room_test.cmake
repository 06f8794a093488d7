# The interpreter that has the peers: mcap, rosbags.
target_compile_definitions(strobe_sensors_test PRIVATE STROBE_TEST_PYTHON="${STROBE_PYTHON}")
# Where the peer's script lies.
target_compile_definitions(strobe_sensors_test PRIVATE STROBE_SENSORS_TESTS="${CMAKE_CURRENT_SOURCE_DIR}/sensors")
