module longview.internal/proto

go 1.24
