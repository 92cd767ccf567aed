// SPDX-License-Identifier: Apache-2.0

/// Chain files that several tests use.
enum Chains {
    /// A source and a sink; ends by itself.
    static let short = """
        {
          "stages": [
            { "id": "pictures", "use": "test-source", "size": "320x240", "rate": 30, "frames": 30 },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """

    /// A camera's pace; never ends by itself.
    static let live = """
        {
          "stages": [
            { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """

    /// As fast as it goes; never ends by itself.
    static let endless = """
        {
          "stages": [
            { "id": "pictures", "use": "test-source", "size": "320x240", "rate": 30 },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """
}
