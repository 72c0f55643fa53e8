module krane.unkey.com/testcluster/cilium-crd

go 1.24.0

require github.com/cilium/cilium v1.18.0
