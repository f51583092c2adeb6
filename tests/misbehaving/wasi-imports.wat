;; A component that asks for what every program built for WASI asks for.
(component
  (import "wasi:io/poll@0.2.6" (instance
    (export "pollable" (type (sub resource)))))
  (import "wasi:cli/environment@0.2.6" (instance
    (export "get-environment" (func (result (list (tuple string string))))))))
