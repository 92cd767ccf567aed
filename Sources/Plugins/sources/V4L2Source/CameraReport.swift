// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What `framehost devices` says about the cameras. [control thread]
enum CameraReport {
    static func all(_ calls: any DeviceCalls) -> [StageDevice] {
        CameraList.all(calls).map { camera in
            var report = StageDevice(
                name: camera.name.isEmpty ? "a camera" : camera.name, path: camera.path, stableIDs: camera.stableIDs,
                facts: [("driver", camera.driver), ("bus", camera.bus), ("serial", camera.serial ?? "")]
                    .filter { !$0.1.isEmpty }.map { StageTopic.Fact($0.0, $0.1) }, option: "controls")
            if let fault = camera.fault {
                report.fault = CameraFault.of(fault, camera.path, calls).description
                return report
            }
            do throws(CallFault) {
                let device = try V4L2Device(path: camera.path, calls: calls)
                report.formats = formats(device)
                report.controls = device.controls().map(\.field)
            } catch {
                report.fault = CameraFault.of(error, camera.path, calls).description
            }
            return report
        }
    }

    private static func formats(_ device: V4L2Device) -> [StageDevice.Format] {
        let formats = device.formats().map { format in
            StageDevice.Format(
                CameraPixels(format.code)?.rawValue ?? "", title: "\(format.code), \(format.title)",
                sizes: CameraPixels(format.code) == nil ? [] : sizes(device, format.code))
        }
        // First the modes that the chain can use. A driver may list eighty others.
        return formats.filter { !$0.name.isEmpty } + formats.filter { $0.name.isEmpty }
    }

    private static func sizes(_ device: V4L2Device, _ code: FourCC) -> [StageDevice.Size] {
        let sizes: [PictureSize] =
            switch device.sizes(code) {
            case .list(let listed): listed
            case .steps(let width, let height):
                [PictureSize(width.least, height.least), PictureSize(width.most, height.most)]
            }
        return sizes.map { size in
            switch device.rates(code, size) {
            case .list(let rates): StageDevice.Size(width: size.width, height: size.height, rates: rates)
            case .range(let slowest, let fastest):
                StageDevice.Size(width: size.width, height: size.height, rates: [fastest, slowest], isRange: true)
            }
        }
    }
}
