// SPDX-License-Identifier: Apache-2.0

/// A service as a chain file asks for it.
public struct ServiceRequest: Sendable {
    /// Its key in the chain file: `control`.
    public var key: String
    /// The kind of service.
    public var type: ServiceType
    /// Its options, as the file has them.
    public var options: [JSONNode.Member]
    /// The chain file's name as the user wrote it.
    public var file: String

    /// Asks for a service.
    public init(key: String, type: ServiceType, options: [JSONNode.Member], file: String) {
        self.key = key
        self.type = type
        self.options = options
        self.file = file
    }

    /// [control thread] Makes the service, which opens nothing yet.
    ///
    /// - Throws: ``FrameHostErrors`` with the places of options that the service does not take, or what its `init`
    ///   throws.
    public func make() throws -> any Service {
        try type.make(options) { option, text in
            place(of: option, at: text)
        }
    }

    /// An error that the service threw when it was started, with its place in the chain file.
    ///
    /// An error whose place is an option gets that option's place; any other gets the place of the service.
    public func placed(_ error: any Error) -> FrameHostError {
        var fault = FrameHostError.wrap(error)
        let option = fault.place.description
        guard type.options.contains(where: { $0.name == option }) else { return fault.within(place(of: "", at: nil)) }
        fault.place = place(of: option, at: options.first { $0.key == option }?.keyPlace)
        fault.option = option
        return fault
    }

    private func place(of option: String, at text: TextPlace?) -> FaultPlace {
        FaultPlace(file: file, position: text, path: option.isEmpty ? key : "\(key).\(option)")
    }
}
