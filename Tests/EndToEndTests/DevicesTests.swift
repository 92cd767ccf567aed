// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What can be said of cameras without one; `make test-camera` has one.
@Suite struct DevicesTests {
    @Test func listsDevicesAsJSON() throws {
        let outcome = try Program.framehost.run("devices", "--json")
        #expect(outcome.status == 0, "\(outcome.error)")
        let devices = try JSON(parsing: outcome.output)["devices"]
        #expect(devices.value is [Any])
    }

    @Test func plansTheExampleAlsoWithoutACamera() throws {
        let example = Repository.root.appending(path: "examples/camera.json").path
        let outcome = try Program.framehost.run("check", example, "--set", "camera.device=\"no such camera\"")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.output.contains(
                "there is no camera 'no such camera': the chain starts without the camera, with a slate of 1280x720 in i420"
            )
                || outcome.output.contains(
                    "there is no camera 'no such camera': the chain starts without the camera, with a slate of 640x480 in i420"
                ),
            "\(outcome.output)")
    }

    @Test func saysThatThereIsNoSuchCameraAndWhatToDo() throws {
        let example = Repository.root.appending(path: "examples/camera.json").path
        let outcome = try Program.framehost.run(
            "check", example, "--set", "camera.device=\"no such camera\"", "--set", "camera.ifMissing=\"fail\"")
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("there is no camera 'no such camera'"), "\(outcome.error)")
    }
}
